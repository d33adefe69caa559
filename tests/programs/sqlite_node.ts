/**
 * The manual's node on a SQLite database, for another process to ask. The argument is the path of
 * the database.
 */
import { SqliteNode } from "../examples/sqlite_node.ts";
import { serveNode } from "../support/remote_node.ts";

await serveNode(new SqliteNode(Deno.args[0]));
