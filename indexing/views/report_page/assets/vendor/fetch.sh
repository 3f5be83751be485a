#!/usr/bin/env bash
# Write dagre.min.js and LICENSE of the npm package @dagrejs/dagre (MIT), whose build is checked by
# its hash. The notice of the license comes first; the control character in a string is escaped, so
# that the text has none; the reference to a source map is dropped.
set -euo pipefail
cd "$(dirname "$0")"
version=3.1.3
hash=54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
npm pack --silent --pack-destination "$scratch" "@dagrejs/dagre@$version" >/dev/null
tar -xzf "$scratch"/*.tgz -C "$scratch"
echo "$hash  $scratch/package/dist/dagre.min.js" | sha256sum --check --quiet
cp "$scratch/package/LICENSE" LICENSE
{
  printf '/*! @dagrejs/dagre %s, with @dagrejs/graphlib\n\n' "$version"
  cat LICENSE
  printf '*/\n'
  sed -e 's/\x01/\\x01/g' -e '/^\/\/# sourceMappingURL/d' -e '/^\/\*! For license/d' \
    "$scratch/package/dist/dagre.min.js"
} > dagre.min.js
