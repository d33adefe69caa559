/**
 * A Worker with the mistake that its error must explain: a client in the module's scope, which all
 * requests share.
 */

import { createRedlock, type Redlock } from "@hasp/redlock";

let redlock: Redlock | undefined;

export default {
  async fetch(request: Request, env: { HASP_NODES: string }): Promise<Response> {
    redlock ??= createRedlock(env.HASP_NODES.split(","), { notify: false });
    try {
      await redlock.using(request.url, { waitMs: 2_000 }, () => {});
      return new Response("locked");
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
