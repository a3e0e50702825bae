package postgrestest

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// secretOf is PostgreSQL's stored form of a role's password, which is its
// name, with one iteration instead of 4096: tests sign in thousands of times.
func secretOf(name string) string {
	salt := []byte("a salt for tests")
	salted, err := pbkdf2.Key(sha256.New, name, salt, 1, sha256.Size)
	if err != nil {
		panic(err) // only a key of an impossible length fails
	}
	stored := sha256.Sum256(digest(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(digest(salted, "Server Key")))
}

func digest(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
