package doctor

import (
	"context"
	"path/filepath"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
)

// ready asks a weir run whether it can serve: its broker may answer, and
// refuse what it cannot write.
func (e *examination) ready(ctx context.Context) {
	const fix = "Read its log: it says why a part is not ready. A broker that cannot write to its folder refuses records."
	ok := e.look(ctx, "ready", "weir run", fix, func(ctx context.Context) error {
		env, err := allinone.ReadDevEnv(filepath.Join(e.DataDir, allinone.EnvFile))
		if err != nil {
			return err
		}
		api, err := client.New(env.BaseURL, env.CAFile, 1)
		if err != nil {
			return err
		}
		defer api.Close()
		return api.Ready(ctx)
	})
	if ok {
		e.report.add(OK, "ready", "weir run", "answers that it can serve", "")
	}
}
