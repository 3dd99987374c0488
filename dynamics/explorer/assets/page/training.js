// What is computed as controls move: the check of the constants, the flow, gradient descent.

const RECORDS = { flow: 400, descent: 400 };

/**
 * @typedef {object} Request
 * @property {object} constants  @property {number} horizon
 * @property {number} eta  @property {number} steps
 */

/** Keeps the runs of the page up to date with a request. */
class Training {
  /**
   * @param {Requests} requests
   * @param {number} least_time  first record of the flow
   * @param {object} listener  with refused(check), flow(run, request), descent(run, request),
   *   progress(done, total), failed(line), no_descent(line)
   */
  constructor(requests, least_time, listener) {
    this.least_time = least_time;
    this.listener = listener;
    this.checks = new Newest(requests);
    this.flows = new Newest(requests);
    this.descents = new Newest(requests);
    this.newest = null;
  }

  /**
   * @param {Request} request
   * @param {boolean} done  whether the reader let go, so that gradient descent follows
   */
  train(request, done) {
    const asked = { ...request, done, begun: performance.now() };
    this.newest = asked;
    this.descents.cancel();
    this.checks.ask({ kind: "check", constants: request.constants }, (reply) => {
      if (reply.error) this.listener.failed(reply.error);
      else if (reply.ok) this.ask_flow(asked);
      else if (asked === this.newest) this.listener.refused(reply);
    });
  }

  ask_flow(asked) {
    const { constants, horizon } = asked;
    const request = { kind: "flow", constants, horizon, records: RECORDS.flow,
      least_time: this.least_time, precise: asked.done };
    this.flows.ask(request, (run) => {
      if (run.error) {
        this.listener.failed(run.error);
        return;
      }
      this.listener.flow({ ...run, series: { ...run.states, ...run.observables } }, asked);
      if (asked.done && asked === this.newest) this.ask_descent(asked);
    });
  }

  ask_descent(asked) {
    const { constants, eta, steps } = asked;
    const request = { kind: "descent", constants, eta, steps, records: RECORDS.descent };
    this.descents.ask(request, (run) => {
      if (run.kind === "progress") this.listener.progress(run.done, run.total);
      else if (run.error) this.listener.no_descent(run.error);
      else if (asked === this.newest) {
        this.listener.descent({ ...run, series: { ...run.states, ...run.observables } }, asked);
      }
    });
  }
}
