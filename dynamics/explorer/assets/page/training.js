// What is computed as controls move: the check of the constants, the flow, gradient descent.

const RECORDS = { moving: 120, still: 400 };

/**
 * @typedef {object} Request
 * @property {object} constants  @property {number} horizon
 * @property {object|null} start  state by name; null for that of the model
 * @property {number} eta  @property {number} steps
 */

/**
 * Keeps the runs of the page up to date with a request. One frame, a check and a flow with its
 * pictures, is under way; of the requests that came meanwhile the newest follows.
 */
class Training {
  /**
   * @param {Requests} requests
   * @param {number} least_time  first record of the flow
   * @param {boolean} flows  whether there is a flow; without one descent is asked for in its place
   * @param {object} listener  with refused(check), flow(run, request), descent(run, request),
   *   progress(done, total), failed(line), no_descent(line)
   */
  constructor(requests, least_time, flows, listener) {
    this.least_time = least_time;
    this.flows = flows;
    this.listener = listener;
    this.requests = requests;
    this.busy = false;
    this.descents = new Newest(requests);
    this.newest = null;
  }

  /**
   * @param {Request} request
   * @param {boolean} done  whether the reader let go, so that gradient descent follows
   */
  train(request, done) {
    this.newest = { ...request, done };
    this.descents.cancel();
    if (!this.busy) this.begin_frame();
  }

  /** Leave off; the newest request is forgotten. */
  stop() {
    this.newest = null;
    this.descents.cancel();
  }

  begin_frame() {
    const asked = this.newest;
    asked.begun = performance.now();
    this.busy = true;
    this.requests.send({ kind: "check", constants: asked.constants }, (reply) => {
      if (!reply.error && reply.ok) {
        this.ask_flow(asked);
        return;
      }
      if (asked === this.newest) {
        if (reply.error) this.listener.failed(reply.error);
        else this.listener.refused(reply);
      }
      this.end_frame(asked);
    });
  }

  /** Go on with what came meanwhile, or with gradient descent where the controls rest. */
  end_frame(asked, found = false) {
    this.busy = false;
    if (this.newest && asked !== this.newest) this.begin_frame();
    else if (this.newest && found && asked.done) this.ask_descent(asked);
  }

  /** The run that is drawn as lines: the flow, or descent where there is none. */
  ask_flow(asked) {
    const { constants, start, horizon, eta, steps } = asked;
    const records = asked.done ? RECORDS.still : RECORDS.moving;
    const request = this.flows
      ? { kind: "flow", constants, start, horizon, least_time: this.least_time, records, precise: asked.done }
      : { kind: "descent", constants, start, eta, steps, records };
    this.requests.send(request, (run) => {
      if (run.kind === "progress") return;
      if (!this.newest) this.end_frame(asked);
      else if (run.error) {
        if (asked === this.newest) this.listener.failed(run.error);
        this.end_frame(asked);
      } else {
        const drawn = { ...run, series: { ...run.states, ...run.observables } };
        this.listener.flow(drawn, asked);
        if (!this.flows) this.listener.descent(drawn, asked);
        this.end_frame(asked, this.flows);
      }
    });
  }

  ask_descent(asked) {
    const { constants, start, eta, steps } = asked;
    const request = { kind: "descent", constants, start, eta, steps, records: RECORDS.still };
    this.descents.ask(request, (run) => {
      if (run.kind === "progress") this.listener.progress(run.done, run.total);
      else if (run.error) this.listener.no_descent(run.error);
      else if (asked === this.newest) {
        this.listener.descent({ ...run, series: { ...run.states, ...run.observables } }, asked);
      }
    });
  }
}
