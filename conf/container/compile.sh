#!/bin/sh
# Compile what reads segments, beside the package, by runs on samples. `build`: what only a build compiles, too.
set -eu
export HOME=/tmp
folder=$(mktemp -d)
for sample in cluster broker; do
  python -m tarfile -e /opt/install/$sample.tar.xz "$folder"
done
node=$folder/cluster/disks/node-1 logs=$folder/broker/logs

found() { "$@" >/dev/null || test $? -eq 1; }  # 1: done, with findings

# A log of one batch and a torn one, which a kit cuts off.
mkdir -p "$folder/torn/t-0"
echo AAAAAAAAAAAAAAA4AAAAAAKb4nWcABAAAAAAAAAABoMRQbAAAAAGgxFBsAAAAAAAAAAABAAAAAAAAAAAAAQwAAAABAAAAAAAAAAAAAAAADgAAAAAApvidQ== |
  base64 -d >"$folder/torn/t-0/00000000000000000000.log"
printf 'version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n' >"$folder/torn/t-0/partition.metadata"

if [ "${1-}" = build ]; then
  found kafka-segments build --source "$node" --source "$logs" --warehouse "$folder/tables" --index-dir "$folder/indexes"
else
  for source in "$node" "$logs"; do
    found kafka-segments triage "$source"
    found kafka-segments records "$source"
    found kafka-segments cleaner "$source" --check records
  done
  for source in "$node/a" "$logs" "$folder/torn"; do
    found kafka-segments recovery kit --source "$source" --out "$folder/kit" --engine threads
    found kafka-segments recovery apply "$folder/kit" --execute
    rm -r "$folder/kit"
  done
fi
rm -r "$folder"
