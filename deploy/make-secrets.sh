#!/bin/sh
# Creates the files of deploy/secrets that docker-compose.yml reads, unless they exist: random secrets, and a self-signed
# certificate for https://localhost. Replace it with your own: certificate, chain and key in one file.
set -eu
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"

[ -e session-secrets ] || openssl rand -hex 32 >session-secrets
[ -e redis-password ] || openssl rand -hex 32 >redis-password
[ -e redis-url ] || printf 'redis://:%s@redis:6379\n' "$(head -n 1 redis-password)" >redis-url
[ -e certificate.pem ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout certificate.pem -out certificate.crt
[ ! -e certificate.crt ] || { cat certificate.crt >>certificate.pem && rm certificate.crt; }

# The containers read the files as other users. The mode of the folder keeps other users of this machine out.
chmod 444 session-secrets redis-password redis-url certificate.pem
