package main

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/shared/process"
)

const description = `Serves Weir's whole HTTP API on one address and hands each request to the module that owns its path.

Example:

  WEIR_LISTEN=:8443 WEIR_TLS_CERT_FILE=server.pem WEIR_TLS_KEY_FILE=server.key WEIR_CA_FILE=ca.pem \
  WEIR_INGEST_URL=https://10.0.0.1:8443 WEIR_LEDGER_URL=https://10.0.0.2:8443 \
  WEIR_GROUPING_URL=https://10.0.0.3:8443 WEIR_TENANTS_URL=https://10.0.0.4:8443 gateway`

func main() {
	process.Main("gateway", description, func(ctx context.Context, config app.Config, logger *slog.Logger) error {
		gateway, err := app.New(config, logger)
		if err != nil {
			return err
		}
		return gateway.Run(ctx)
	})
}
