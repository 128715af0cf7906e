internal import CLinux
import Glibc

/// The number of the first descriptor that a detached process gets beside its standard streams.
package let firstInheritedDescriptor: Int32 = 3

/// Starts this program again in a session of its own, in the root folder, with nothing blocked or ignored, standard
/// streams on /dev/null (with `keepsOutput` all but the input stay) and `descriptors` as numbers 3 and on: they must have
/// higher numbers here. All others are closed: one of the caller's, a lock of a script say, must not live as long as the
/// new process.
package func startDetached(
  _ arguments: [String], environment: [String], descriptors: [Int32], keepsOutput: Bool
) throws(SystemError) {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
  if !keepsOutput {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
  }
  for (index, descriptor) in descriptors.enumerated() {
    posix_spawn_file_actions_adddup2(&actions, descriptor, firstInheritedDescriptor + Int32(index))
  }
  clinux_spawn_actions_close_from(&actions, firstInheritedDescriptor + Int32(descriptors.count))
  clinux_spawn_actions_change_folder(&actions, "/")

  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  defer { posix_spawnattr_destroy(&attributes) }
  var none = sigset_t()
  sigemptyset(&none)
  var all = sigset_t()
  sigfillset(&all)
  posix_spawnattr_setsigmask(&attributes, &none)
  posix_spawnattr_setsigdefault(&attributes, &all)
  posix_spawnattr_setflags(
    &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | Int16(CLINUX_POSIX_SPAWN_SETSID))

  // By its name, so that people find it in a list of processes; by way of /proc when the file is gone.
  var executable = "/proc/self/exe"
  if let path = linkTarget(executable), access(path, X_OK) == 0 { executable = path }
  var process = pid_t()
  let result = withCStrings(arguments) { arguments in
    withCStrings(environment) { environment in
      posix_spawn(&process, executable, &actions, &attributes, arguments, environment)
    }
  }
  guard result == 0 else { throw SystemError("posix_spawn", code: result) }
}
