/// The few web pages. They run no script, load nothing, and are shown in no frame.
enum Page {
  static func problem(_ refusal: Refusal) -> HTTPResponse {
    var response = page(
      refusal.status, "This does not work", "<p>\(escaped(refusal.detail))</p>")
    response.headers += refusal.headers
    return response
  }

  /// The form to sign in with.
  static func signIn(_ status: Int, sealed: String, action: String, email: String = "", fault: String? = nil)
    -> HTTPResponse
  {
    page(
      status, "Sign in",
      """
      \(fault.map { "<p role=\"alert\">\(escaped($0))</p>" } ?? "")
      <form method="post" action="\(escaped(action))">
      <input type="hidden" name="request" value="\(escaped(sealed))">
      <p><label>E-mail address<br>
      <input type="email" name="username" value="\(escaped(email))" autocomplete="username" autofocus></label></p>
      <p><label>Password<br>
      <input type="password" name="password" autocomplete="current-password"></label></p>
      <p><button name="action" value="sign_in">Sign in</button>
      <button name="action" value="deny" formnovalidate>Cancel</button></p>
      </form>
      """)
  }

  private static func page(_ status: Int, _ title: String, _ body: String) -> HTTPResponse {
    let text = """
      <!DOCTYPE html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>\(title)</title>
      <style>body { font: 16px sans-serif; max-width: 22em; margin: 3em auto } input { width: 100% }</style>
      <h1>\(title)</h1>
      \(body)
      </html>

      """
    return HTTPResponse(
      status,
      headers: [
        ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
        (
          "Content-Security-Policy",
          "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
        ),
        ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
      ], body: Array(text.utf8))
  }

  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
