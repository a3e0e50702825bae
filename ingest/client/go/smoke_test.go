package weir_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	weir "github.com/weirlog/weir/ingest/client/go"
	"github.com/weirlog/weir/ingest/client/go/conformance"
)

const key = "weir_000000000000000000000000000000000000000000000000"

func TestSmoke(t *testing.T) {
	server := conformance.NewServer()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := weir.New(weir.Options{BaseURL: server.URL + "/v1", APIKey: key, CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	slog.New(weir.NewHandler(c, weir.HandlerOptions{})).Info("hello", "a", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if server.Entries["hello"] != 1 {
		t.Fatal(server.Entries, c.Stats())
	}
}
