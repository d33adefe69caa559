/**
 * Credentials that are asked for at each login, because they change.
 *
 * @module
 */

/** The credentials of one login. */
export interface Credentials {
  /**
   * The ACL user.
   *
   * @default {the default user}
   */
  username?: string | undefined;
  /** The password, or the token that stands for one. */
  password: string;
}

/**
 * Returns the credentials for a login to the server with this name; see the option `credentials`.
 */
export type GetCredentials = (node: string) => Credentials | Promise<Credentials>;
