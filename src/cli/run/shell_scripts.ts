/**
 * The two shell scripts that `run` starts, for a POSIX `sh`.
 *
 * @module
 */

/**
 * Becomes the command as soon as a line arrives on file descriptor 3, or ends if that closes: so the command does not
 * start before its watcher is ready, even if `hasp` is killed in between. A command that is missing or cannot be
 * executed ends with 127 or 126, as in every shell.
 */
export const GATE = 'read -r go <&3 || exit 125; exec 3<&-; exec "$@"';

/** The line that ends a {@linkcode WATCHER} that is not needed any more. */
export const WATCHER_END = "end";

/**
 * Kills the command if `hasp` cannot. Its first line of input is what to kill: a process, or a process group with a
 * minus before it. Each further line is the number of seconds after which it kills the command and prints a word, and
 * replaces the line before. When the first of them counts, it prints a word too: only now may the command start.
 * {@linkcode WATCHER_END} ends it. It kills at once if its input ends otherwise, because then `hasp` is gone.
 *
 * It ignores the signals that a terminal or a service manager sends to all processes. Each line of seconds has a
 * `sleep` of its own, in a subshell that is ended together with it.
 */
export const WATCHER = `
trap '' HUP INT QUIT TERM PIPE
read -r target || exit 0
timer=
ready=
stop() {
  [ -z "$timer" ] || { kill -s USR1 "$timer"; wait "$timer"; }
  timer=
}
while read -r seconds; do
  stop
  [ "$seconds" != ${WATCHER_END} ] || exit 0
  (
    trap 'kill -s KILL "$!"; exit' USR1
    sleep "$seconds" >/dev/null &
    wait "$!" && trap '' USR1 && kill -s KILL -- "$target" && echo killed
  ) &
  timer=$!
  [ "$ready" ] || echo ready
  ready=yes
done
stop
kill -s KILL -- "$target"
`;
