import Glibc
import KapeControl

/// A provider that keeps to nothing: it speaks to kaped itself, asks for what it may not have, and writes down what it was
/// told. Its arguments: the file to write to.
let report = open(CommandLine.arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0o644)
func write(_ line: String) {
  let text = line + "\n"
  _ = Glibc.write(report, text, text.utf8.count)
}

signal(SIGPIPE, SIG_IGN)
let reactor = try Reactor()
let door = try IPCConnection.connect(Daemon.socketPath, reactor)
Task { await door.run { _ in } }
let answer = try await door.ask("attach", within: .seconds(10))
write("attached with \(answer.descriptors.count) descriptor")
do {
  _ = try await door.ask("attach", within: .seconds(10))
  write("attached twice")
} catch {
  write("second attach: \(error)")
}
let control = try IPCConnection(Descriptor(owning: answer.descriptors.take()[0]), reactor)
await control.run { request in
  switch request.operation {
  case "start":
    let tun = request.descriptors.take()[0]
    Task {
      await Attempts(control, tun).all()
      await request.reply()
    }
  case "message": await request.reply(.object([.init("data", .string("bm8="))]))
  case "stop":
    // Never stops: kaped has to see to it.
    break
  default: await request.reply()
  }
}
write("hung up on")
// Nor does it go.
signal(SIGTERM, SIG_IGN)
while true { sleep(60) }
