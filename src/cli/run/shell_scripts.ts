/**
 * The two shell scripts that `run` starts, for a POSIX `sh`.
 *
 * @module
 */

/**
 * Becomes the command as soon as a line arrives on a file descriptor, or ends if that closes: so
 * the command does not start before its watcher is ready, even if `hasp` is killed in between. A
 * command that is missing or cannot be executed ends with 127 or 126, as in every shell.
 *
 * @param fd The file descriptor, which the command does not get.
 */
export function gate(fd: number): string {
  return `read -r go <&${fd} || exit 125; exec ${fd}<&-; exec "$@"`;
}

/** What a {@linkcode WATCHER} prints when it has killed the command, or found that it had ended. */
export const OVER = "over";
/** What it prints instead if processes of the command are left, because it may not end them. */
export const LEFT = "left";

/**
 * Kills the command if `hasp` cannot. It first prints a file descriptor that the command would not
 * inherit. The first line of its input is the process id of the command, and a word if that leads a
 * session of its own. Further lines are:
 *
 * - a number: the command may run for so many seconds from now on, whatever the lines before said;
 * - the name of a signal: the signal goes to the process groups of the session other than the
 *   command's own, which gets it from `hasp` at once;
 * - `drain`, which is the last: it ends when no process of the session is left;
 * - `end`, which is the last: it is not needed any more.
 *
 * It prints a word when the first number counts: only now may the command start. If the time is
 * over or its input ends, which shows that `hasp` is gone, it kills the session.
 *
 * One part reads the input, and has a `sleep` for each number; another part kills. The pipe between
 * them puts what happens in order: the end of a `sleep`, for whatever reason, counts only if no
 * later number came before it. So no `sleep` has to be stopped before the end, and every failure of
 * a part ends the command. In the end, SIGVTALRM ends each `sleep`, once all of them have begun,
 * and the shells wait for their children: a container may have no process that does so for orphans.
 *
 * It ignores the signals that can be sent to all processes and be ignored. Sessions are looked up
 * in `/proc`, by `cat`, because `sed` ends at the first process that ends while it is read; without
 * `/proc`, as on macOS, the process group of the command stands for its session.
 */
export const WATCHER = `
trap '' HUP INT QUIT ALRM TERM USR1 USR2 PIPE PROF XCPU XFSZ TSTP TTIN TTOU
trap : VTALRM
fd=3
while [ $fd -lt 9 ] && { true <&$fd; } 2>/dev/null; do fd=$((fd + 1)); done
echo $fd
read -r command session || exit 0
files=/proc/$command/stat alive="s/.*) [^XZ] .*/$command/p" id=pid leader=$command
[ -z "$session" ] || {
  files='/proc/[0-9]*/stat' alive="s/.*) [^XZ] [0-9]* \\([0-9]*\\) $command .*/-\\1/p"
  id=pgid leader=-$command
}
targets() {
  if [ -e /proc/self/stat ]; then cat $files 2>/dev/null | sed -n "$alive"
  else ps -A -o $id= -o stat= | sed -n "s/^ *$command  *[^XZ].*/$leader/p"
  fi | sort -u
}
finish() {
  [ -z "$ending" ] || return
  kill -s KILL -- $leader
  looks=0
  while left=$(targets) && [ "$left" ] && [ $looks -lt 50 ]; do
    kill -s KILL -- $left
    looks=$((looks + 1))
    sleep 0.02
  done
  [ "$left" ] && echo ${LEFT} || echo ${OVER}
  ending=yes
}
{
  trap 'until wait; do :; done; exit' VTALRM
  limit=0
  while read -r line; do
    case $line in
      drain) while [ "$(targets)" ]; do sleep 0.05; done; break ;;
      [0-9]*)
        limit=$((limit + 1))
        echo "limit $limit" || exit
        {
          trap 'kill -s KILL $!; wait; exit' VTALRM
          sleep "$line" &
          echo begun
          wait $!
          echo "over $limit"
        } & ;;
      *) echo "$line" || exit ;;
    esac
    jobs >/dev/null
  done
  echo kill
  until wait; do :; done
} | {
  trap : VTALRM
  limit=0 begun=0 ending=
  while read -r what which; do
    case $what in
      limit) limit=$which; [ $limit != 1 ] || echo ready ;;
      begun) begun=$((begun + 1)) ;;
      over) [ "$which" != $limit ] || finish ;;
      kill) finish ;;
      end) ending=yes ;;
      *) for target in $(targets); do [ $target = $leader ] || kill -s $what -- $target; done ;;
    esac
    [ -z "$ending" ] || [ $begun != $limit ] || break
  done
  [ "$ending" ] || finish
  kill -s VTALRM 0
}
`;
