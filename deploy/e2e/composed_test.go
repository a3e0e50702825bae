//go:build composed

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/deploy/provision"
)

// What `make up` has started, at WEIR_BASE_URL, with the secrets in WEIR_SECRETS.
func TestComposed(t *testing.T) {
	secrets := os.Getenv("WEIR_SECRETS")
	operator, err := os.ReadFile(filepath.Join(secrets, provision.OperatorToken))
	must(t, err)
	authority := localca.In(filepath.Join(secrets, provision.Certificates)).CA
	scenario(t, connect(t, os.Getenv("WEIR_BASE_URL"), authority, strings.TrimSpace(string(operator))), nil)
}
