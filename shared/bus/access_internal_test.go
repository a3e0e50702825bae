package bus

import (
	"os"
	"path/filepath"
	"testing"
)

// Keys are derived from a password once, until the file holds another.
func TestTheMechanismStaysWithItsSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	sign := &freshSecret{access: Access{User: "weir", PasswordFile: file}}
	current := func(password string) any {
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		mechanism, err := sign.current()
		if err != nil {
			t.Fatal(err)
		}
		return mechanism
	}
	first := current("one")
	if current("one\n") != first {
		t.Error("another mechanism for the same secret")
	}
	if current("two") == first {
		t.Error("the same mechanism for another secret")
	}
}
