package console

import (
	"context"
	"net/http"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/ruletext/routes"
)

// rulesPath is where the rules of a project are.
const rulesPath = groupsPath + "/rules"

// rulesPage shows and changes the rules of projects.
func (c *console) rulesPage(rules *groups.Rules) *routes.Page {
	set := func(r *http.Request, wish ruletext.Wish) (ruletext.Version, error) {
		return rules.Set(r.Context(), c.request(r), wish)
	}
	preview := func(ctx context.Context, who identity.Principal, project, text string) (any, error) {
		made, err := rules.Preview(ctx, who, project, text)
		return showPreview(made), err
	}
	return &routes.Page{
		Rules: routes.Rules{Versions: rules.Versions, Set: set, Preview: preview}, Pages: c.pages, Directory: c.directory, Path: rulesPath, May: mayDecide,
		Saved: "The rules are saved. They hold for errors that come two seconds later or after that.",
	}
}

// shownPreview is what rules would do, a row for each change.
type shownPreview struct {
	groups.RulesPreview
	Rows []shownChange
	More int64
}

type shownChange struct {
	What       string
	From, Into []shownSide
}

type shownSide struct {
	grouping.PreviewSide
	Href string // of a group of now
}

func showSides(sides []grouping.PreviewSide) (shown []shownSide) {
	for _, side := range sides {
		s := shownSide{PreviewSide: side}
		if side.ID != "" {
			s.Href = groupsPath + "/" + side.ID
		}
		shown = append(shown, s)
	}
	return shown
}

func showPreview(p groups.RulesPreview) *shownPreview {
	shown := &shownPreview{RulesPreview: p, More: int64(p.MoreJoins + p.MoreSplits + p.MoreMoves)}
	for _, of := range []struct {
		what    string
		changes []grouping.PreviewChange
	}{{"become one", p.Joins}, {"is taken apart", p.Splits}, {"goes on in a new group", p.Moves}} {
		for _, change := range of.changes {
			shown.Rows = append(shown.Rows, shownChange{of.what, showSides(change.From), showSides(change.Into)})
		}
	}
	return shown
}
