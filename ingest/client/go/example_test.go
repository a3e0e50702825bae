package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	weir "github.com/weirlog/weir/ingest/client/go"
	"github.com/weirlog/weir/ingest/client/go/conformance"
)

// The settings are WEIR_BASE_URL, WEIR_API_KEY and WEIR_CA_FILE.
func Example() {
	defer pretendWeir()()

	client, err := weir.New(weir.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())
	slog.New(weir.NewHandler(client, weir.HandlerOptions{})).Info("cart opened", "cart", 7)

	fmt.Println(client.Flush(context.Background()), client.Stats().Accepted)
	// Output: <nil> 1
}

type requestID struct{}

func ExampleNewHandler() {
	defer pretendWeir()()
	client, err := weir.New(weir.Options{
		Environment: "staging",
		OnDrop:      func(d weir.Drop) { fmt.Fprintln(os.Stderr, d) },
	})
	if err != nil {
		panic(err)
	}
	log := slog.New(weir.NewHandler(client, weir.HandlerOptions{
		Level: slog.LevelDebug,
		WithContext: func(ctx context.Context) map[string]any {
			return map[string]any{"request_id": ctx.Value(requestID{})}
		},
		Redact: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "password" {
				return slog.String(a.Key, "[hidden]")
			}
			return a
		},
	}))
	ctx := context.WithValue(context.Background(), requestID{}, "r1")
	log.ErrorContext(ctx, "no order", "error", errors.New("the card is declined"), "user", slog.GroupValue(slog.String("password", "secret")))

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(client.Close(ctx), client.Stats().Accepted)
	// Output: <nil> 1
}

// pretendWeir starts a server that accepts all, and sets the environment.
func pretendWeir() (stop func()) {
	server := conformance.NewServer()
	folder, err := os.MkdirTemp("", "weir")
	if err != nil {
		panic(err)
	}
	ca, err := server.CAFile(folder)
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"WEIR_BASE_URL": server.URL + "/v1", "WEIR_API_KEY": key, "WEIR_CA_FILE": ca} {
		os.Setenv(name, value)
	}
	return func() {
		server.Close()
		os.RemoveAll(folder)
	}
}

func TestTheReadmeIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	if !strings.Contains(strings.ReplaceAll(string(example), "\n\t", "\n"), block) || block == "" {
		t.Errorf("example_test.go lacks\n%s", block)
	}
}
