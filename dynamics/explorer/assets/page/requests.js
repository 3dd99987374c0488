// Requests to the worker: of each kind one is under way, and of those that wait the newest is sent.

/** The worker of the script of the page; a file has no other that a browser would start. */
function started_worker() {
  const script = JSON.parse(document.getElementById("worker").textContent);
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  return new Worker(address);
}

/** Sends requests and hands each reply to who asked. */
class Requests {
  /** @param {Worker} worker  @param {function(string): void} fail called with what a worker throws */
  constructor(worker, fail) {
    this.worker = worker;
    this.count = 0;
    this.waiting = new Map();
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      const error = event.message || "the worker of this page has stopped";
      for (const id of [...this.waiting.keys()]) this.receive({ id, error });
      fail(error);
    };
  }

  /** @returns {number} the id of the request */
  send(request, receive) {
    const id = (this.count += 1);
    this.waiting.set(id, receive);
    this.worker.postMessage({ ...request, id });
    return id;
  }

  receive(reply) {
    const receive = this.waiting.get(reply.id);
    if (!receive) return;
    if (reply.kind !== "progress") this.waiting.delete(reply.id);
    receive(reply);
  }

  /** Ask the worker to leave off; its reply, if one comes, reaches nobody. */
  cancel(id) {
    if (this.waiting.delete(id)) this.worker.postMessage({ kind: "cancel", id });
  }
}

/** Requests of one kind of which only the newest counts. */
class Newest {
  /** @param {Requests} requests */
  constructor(requests) {
    this.requests = requests;
    this.under_way = null;
    this.next = null;
  }

  /** @param {object} request  @param {function(object): void} receive called with the reply */
  ask(request, receive) {
    if (this.under_way !== null) {
      this.next = [request, receive];
      return;
    }
    this.under_way = this.requests.send(request, (reply) => {
      if (reply.kind !== "progress") this.under_way = null;
      receive(reply);
      if (this.under_way === null && this.next) {
        const [newer, receiver] = this.next;
        this.next = null;
        this.ask(newer, receiver);
      }
    });
  }

  /** Forget what is under way and what waits. */
  cancel() {
    this.next = null;
    if (this.under_way !== null) this.requests.cancel(this.under_way);
    this.under_way = null;
  }
}
