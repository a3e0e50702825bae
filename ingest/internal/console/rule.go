package console

import (
	"context"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext/routes"
)

// rulesPath is where the rules of a project are.
const rulesPath = "/console/logs/rules"

func (c *console) rulesPage() *routes.Page {
	preview := func(ctx context.Context, who identity.Principal, project, text string) (any, error) {
		return c.Rules.Preview(ctx, who, project, text)
	}
	return &routes.Page{
		Rules: routes.Rules{Versions: c.Rules.Versions, Set: (&ingesthttp.Rules{Service: c.Rules, Guard: c.Guard}).Set, Preview: preview},
		Pages: c.pages, Directory: c.Directory, Path: rulesPath, May: rules.May, Examples: ingest.RedactionPatterns(),
		Saved: "The rules are saved. They hold for entries that come a second later or after that.",
	}
}
