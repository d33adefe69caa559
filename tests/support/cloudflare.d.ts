/**
 * The part of the module `cloudflare:workers` that an example imports, for the type check. The
 * platform has the module built in.
 */

/** An object with storage of its own. */
export declare class DurableObject {
  constructor(ctx: DurableObjectState, env: unknown);
  protected readonly ctx: DurableObjectState;
}

/** What the platform gives to an object. */
interface DurableObjectState {
  readonly storage: {
    readonly sql: {
      /** Runs a statement, before anything else happens to the object. */
      exec<Row>(sql: string, ...bound: unknown[]): { toArray(): Row[] };
    };
  };
}
