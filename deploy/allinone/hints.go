package allinone

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// WriteHints writes what runs where, with commands to paste into any
// POSIX shell, in one write: a reader of the first line has the rest.
func (a *App) WriteHints(out io.Writer, took time.Duration) {
	var text bytes.Buffer
	a.compose(&text, took)
	_, _ = out.Write(text.Bytes())
}

func (a *App) compose(text *bytes.Buffer, took time.Duration) {
	fmt.Fprintf(text, `Weir is ready after %.1f s: %s
Data in %s. Ctrl-C stops in order; the next start finds everything as it was.
`, took.Seconds(), a.env.BaseURL, a.dir.path)
	if a.env.ConsolePassword != "" {
		fmt.Fprintf(text, "Console: %s as %s, password in %s\n", a.env.ConsoleURL, a.env.ConsoleEmail, filepath.Join(a.dir.path, EnvFile))
	} else {
		fmt.Fprintf(text, "Console: %s\n", a.env.ConsoleURL)
	}
	hints := demoHints
	if a.env.APIKey == "" {
		hints = firstHints
	}
	fmt.Fprintf(text, hints, quote(a.dir.env()))
}

// demoHints are commands to try with the demo organization.
const demoHints = `
Post a batch:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/logs" -H "x-api-key: $WEIR_API_KEY" -H "Content-Type: application/json" -d '{"logs": [
    {"timestamp": "'"$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)"'", "level": "info", "message": "cart opened", "metadata": {"cart": 4711}},
    {"timestamp": "'"$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)"'", "level": "error", "message": "checkout failed", "error": {"type": "TypeError",
     "message": "total is undefined", "stack_trace": ["at total (/srv/shop/cart.js:41:13)", "at checkout (/srv/shop/pay.js:7:2)"]}}]}'

Read the balance:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations/$WEIR_ORGANIZATION/balance" -H "Authorization: Bearer $WEIR_SERVICE_TOKEN"

List the error groups:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/projects/$WEIR_PROJECT/error-groups" -H "x-api-key: $WEIR_API_KEY"

Read the logs, newest first:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/logs?project=$WEIR_PROJECT&limit=10" -H "x-api-key: $WEIR_API_KEY"

A minute of realistic traffic: make demo

`

// firstHints are for an installation without a demo organization: it
// always has the operator's token.
const firstHints = `
There is no demo organization here. Who has signed in to the console creates a project and an API key there, and is shown a command that
sends the first log. Anyone who runs Weir does the same over the API:

List the organizations:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations" -H "Authorization: Bearer $WEIR_OPERATOR_TOKEN"

Create an organization:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations" -H "Authorization: Bearer $WEIR_OPERATOR_TOKEN" \
    -H "Content-Type: application/json" -d '{"name": "Acme", "tier": "indie"}'

Read what else there is to call:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/openapi.json"

`
