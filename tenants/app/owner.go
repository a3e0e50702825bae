package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Pages for links with codes.
const (
	WelcomePath = people.WelcomePath
	ResetPath   = people.ResetPath
)

// DefaultOrigin is the console's address without a setting.
const DefaultOrigin = "https://localhost:8443"

// Link is the address of a page of the console, with
// a code after the #, which browsers do not send.
func Link(origin, path string, code tenants.Secret) string {
	return strings.TrimSuffix(origin, "/") + path + "#" + code.Reveal()
}

// welcomeOwner prints the link for the first owner while there is no member.
// It prints to the output, because logs are kept and shown to others.
func (a *App) welcomeOwner(ctx context.Context) error {
	if a.config.Output == nil {
		return nil
	}
	origin, err := a.config.origin()
	if err != nil {
		return err
	}
	code, expires, err := a.people.Codes.IssueOwnerCode(ctx, unitofwork.AtStart())
	if errors.Is(err, tenants.ErrHasMembers) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot make a link for the first owner: %w", err)
	}
	_, err = fmt.Fprintf(a.config.Output, "\nNobody can sign in here yet. Anyone who opens this link becomes the first owner:\n\n    %s\n\n"+
		"It works once, until %s. A restart prints another one, and so does \"tenants owner-link\"; this one is void then.\n\n",
		Link(cmp.Or(origin, DefaultOrigin), WelcomePath, code), expires.Format("2006-01-02 15:04 UTC"))
	return err
}
