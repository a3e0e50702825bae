package provision

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/xdg-go/scram"
)

// rounds is how often a password is hashed, as in PostgreSQL.
const rounds = 4096

// verifier returns what PostgreSQL stores of a password. Sent instead, it
// keeps the password out of statements, and so out of the server's logs.
func verifier(password string) (string, error) {
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return salted(password, salt[:])
}

// salted returns the form of RFC 5803.
func salted(password string, salt []byte) (string, error) {
	client, err := scram.SHA256.NewClient("", password, "") // the form names no user
	if err != nil {
		return "", err
	}
	kept := client.GetStoredCredentials(scram.KeyFactors{Salt: string(salt), Iters: rounds})
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(kept.StoredKey), text(kept.ServerKey)), nil
}
