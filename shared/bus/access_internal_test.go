package bus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// Keys are derived from a password once, until the file holds another.
func TestTheMechanismStaysWithItsSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	sign := &freshSecret{access: Access{User: "weir", PasswordFile: file}}
	current := func(password string) any {
		testenv.Must(t, os.WriteFile(file, []byte(password), 0o600))
		mechanism, err := sign.current()
		testenv.Must(t, err)
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
