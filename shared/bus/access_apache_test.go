//go:build apache

package bus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// Apache Kafka accepts each mechanism, and answers that a password is wrong where the embedded
// broker hangs up.
func TestSignedInAtApacheKafka(t *testing.T) {
	node, err := apache.Start(t.Context(), apache.Config{Dir: t.TempDir(), Brief: true, Users: map[string]string{"weir": "open-sesame"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	brokers, password := []string{node.SignInAddr()}, filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"} {
		t.Run(mechanism, func(t *testing.T) {
			signedIn(t, brokers, bus.Access{User: "weir", PasswordFile: password, Mechanism: mechanism}, "test.access."+strings.ToLower(mechanism))
		})
	}
	refusedSignIn(t, brokers, "weir")
}
