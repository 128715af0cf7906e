# Sourced: packages of another Debian release, read from the mirror that this machine's own sources name. Nothing is installed.
# debian_release_download SUITE DIR PACKAGE: leaves the .deb in DIR.
debian_release_download() {
  local suite=$1 dir=$2 package=$3 state uri
  state=$(mktemp -d)
  mkdir -p "$state"/lists/partial "$state"/cache/archives/partial "$state"/etc
  uri=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1) || true
  [[ -n $uri ]] || uri=$(sed -n 's/^deb \(\[.*\] \)\?\(http[^ ]*\).* main.*/\2/p' /etc/apt/sources.list 2>/dev/null | head -1) || true
  [[ -n $uri ]] || { echo "no Debian mirror is named in this machine's apt sources" >&2; return 1; }
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
    "$uri" "$suite" >"$state/etc/release.sources"
  local options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$state/etc" -o "Dir::State::Lists=$state/lists"
    -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root)
  local result=0
  apt-get -qq "${options[@]}" update && (cd "$dir" && apt-get -qq "${options[@]}" download "$package") || result=1
  rm -rf "$state"
  return $result
}
