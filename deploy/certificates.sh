#!/bin/sh
# Makes a certificate authority for one installation, and certificates for its services: certificates.sh FOLDER [NAME...]
# A NAME is a service and the name under which it is reached; without names: what compose.yaml has. What is there is kept,
# so that it can be run again; keys are readable by their owner only. The key of the authority stays in FOLDER/ca.key:
# keep it off the machines that run the services.
set -eu
folder=${1:?a folder for the certificates}
shift
[ $# -gt 0 ] || set -- postgres scheduler worker run
days=825
umask 077
mkdir -p "$folder"
cd "$folder"

if [ ! -f ca.crt ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=eval_pipeline" \
    -keyout ca.key -out ca.crt 2>/dev/null
fi

for name in "$@"; do
  [ -f "$name.crt" ] && continue
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
    -keyout "$name.key" -out "$name.csr" 2>/dev/null
  printf 'subjectAltName=DNS:%s,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' "$name" >"$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$days" -extfile "$name.ext" \
    -out "$name.crt" 2>/dev/null
  rm "$name.csr" "$name.ext"
done
