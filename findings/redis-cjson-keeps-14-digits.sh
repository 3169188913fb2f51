#!/bin/sh
# Redis 7.0.15 (Debian 12), cjson in scripts: a guess says that a script which decodes a JSON document, changes one member and encodes
# it again leaves the others as they are, since Lua's numbers are the doubles that JavaScript has. Yet cjson.encode() writes 14 digits
# where JSON.stringify() needs up to 17: an id of 16 digits becomes 1.0209033848397e+15, a time in microseconds loses its last ones,
# and so does a price with many digits. Nothing fails, and JSON.parse() takes it. tostring() and `..` write 14 digits too, so that a
# key made with such an id is the key of another one; the number itself, handed to redis.call(), has all of them. Times in milliseconds
# have 13 digits, so that most tests pass. An id has to be a text in the document.
set -eu
redis-server --version | grep -q 'v=7\.0\.15 ' || { echo 'It needs Redis 7.0.15 on the PATH.'; exit 1; }
folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' >"$folder/log" &
server=$!
trap 'kill $server; wait $server; rm -rf "$folder"' EXIT
call() { redis-cli -s "$folder/socket" "$@"; }
tries=0
until call ping >/dev/null 2>&1; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { echo 'Redis does not listen.'; exit 1; }
  sleep 0.1
done
encode='return cjson.encode(cjson.decode(ARGV[1]))'
seen=$(
  for member in '"id":1020903384839652' '"at":1764540000123456' '"price":12345678.123456789' '"ms":1764540000123'; do
    echo "{$member} is $(call eval "$encode" 0 "{$member}")"
  done
  call eval 'local id = cjson.decode(ARGV[1]).id
    redis.call("SET", "last", id)
    return "key " .. "order:" .. id .. ", value " .. redis.call("GET", "last")' 0 '{"id":1020903384839652}'
)
echo "$seen"
[ "$seen" = '{"id":1020903384839652} is {"id":1.0209033848397e+15}
{"at":1764540000123456} is {"at":1.7645400001235e+15}
{"price":12345678.123456789} is {"price":12345678.123457}
{"ms":1764540000123} is {"ms":1764540000123}
key order:1.0209033848397e+15, value 1020903384839652' ]
