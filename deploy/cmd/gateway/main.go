// Command gateway serves the whole API on one address and hands each request to the module that owns its path.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/gateway/app"
)

const description = `Serves Weir's whole HTTP API on one address and hands each request to the module that owns its path.

Every setting can be given in the environment. Example:

  WEIR_TLS_CERT_FILE=server.pem WEIR_TLS_KEY_FILE=server.key WEIR_CA_FILE=ca.pem \
  WEIR_INGEST_URL=https://10.0.0.1:8443  WEIR_LEDGER_URL=https://10.0.0.2:8443 \
  WEIR_GROUPING_URL=https://10.0.0.3:8443  WEIR_TENANTS_URL=https://10.0.0.4:8443  gateway`

func main() {
	var config app.Config
	kong.Parse(&config, kong.Name("gateway"), kong.Description(description))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config app.Config) error {
	gateway, err := app.New(config, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	return gateway.Run(ctx)
}
