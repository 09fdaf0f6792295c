#!/bin/sh
# Makes the keys and certificates of README.md; needs openssl.
set -eu
cd "$(dirname "$0")"
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem
openssl rsa -in rsa.pem -pubout -out rsa-public.pem
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" -days 36500 -subj "/CN=Ranpace tests"
}
sign() { # authority, file, name
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$2.key" -out "$2.csr" -subj "/CN=$3"
    printf 'subjectAltName=DNS:%s\nbasicConstraints=CA:FALSE\n' "$3" >"$2.ext"
    openssl x509 -req -in "$2.csr" -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days 36500 -extfile "$2.ext" -out "$2.pem"
    rm "$2.csr" "$2.ext"
}
authority ca
authority other
sign ca server localhost
sign ca client app.example
sign other forged app.example
rm ca.key other.key other.pem ./*.srl
