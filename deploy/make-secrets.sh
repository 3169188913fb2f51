#!/bin/sh
# Makes what docker-compose.yml reads from deploy/secrets, as far as it is missing: random secrets, and a certificate for
# https://localhost that nobody vouches for. Put your own in place of it: certificate, chain and key in one file.
set -eu
folder=${1:-$(dirname "$0")/secrets}
mkdir -p -m 700 "$folder"
cd "$folder"

[ -e session-secrets ] || openssl rand -hex 32 >session-secrets
[ -e redis-password ] || openssl rand -hex 32 >redis-password
[ -e redis-url ] || printf 'redis://:%s@redis:6379\n' "$(head -n 1 redis-password)" >redis-url
[ -e certificate.pem ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout certificate.pem -out certificate.crt
[ ! -e certificate.crt ] || { cat certificate.crt >>certificate.pem && rm certificate.crt; }

# The containers read them as users of their own; the folder is closed to everybody else on this machine.
chmod 444 ./*
