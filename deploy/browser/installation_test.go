//go:build browser

package browser

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// An installation is all of Weir in this process, empty, served over HTTPS.
type installation struct {
	app    *allinone.App
	origin string // such as https://localhost:41234
	api    *client.Client
	token  string // the operator's

	printed *bytes.Buffer // standard output during the start
}

func newInstallation(t *testing.T) installation {
	t.Helper()
	return newGround(t).start(t)
}

// A ground is what an installation leaves behind, and the next one begins with.
type ground struct {
	dataDir  string
	database httpapi.Secret
	brokers  []string
}

func newGround(t *testing.T) ground {
	t.Helper()
	return ground{t.TempDir(), httpapi.Secret(postgrestest.URL(t)), kafkatest.Brokers(t)}
}

// start runs an installation until the test ends.
func (g ground) start(t *testing.T) installation {
	t.Helper()
	modules, err := allinone.ModulesFromEnvironment()
	must(t, err)
	var printed bytes.Buffer
	modules.Tenants.Output, modules.Tenants.CheapPasswords = &printed, true
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "localhost:0", DataDir: g.dataDir, DatabaseURL: g.database, Brokers: g.brokers,
		Modules: modules, NoDemo: true,
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	allinonetest.Run(t, app)
	env := app.Env()
	api, err := client.New(env.BaseURL, env.CAFile, 4)
	must(t, err)
	t.Cleanup(api.Close)
	return installation{app: app, origin: strings.TrimSuffix(env.BaseURL, "/v1"), api: api, token: env.OperatorToken, printed: &printed}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
