package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// links are addresses of the console.
type links struct {
	ConsoleOrigin string `help:"Where people reach the console, such as https://weir.example." env:"WEIR_CONSOLE_ORIGIN" default:"https://localhost:8443"`
}

func (l links) to(path string, code tenants.Secret) string {
	return app.Link(l.ConsoleOrigin, path, code)
}

type ownerLink struct {
	installation
	links
}

// Help implements kong.HelpProvider.
func (ownerLink) Help() string {
	return `The link goes to standard output, alone and once: anyone who opens it becomes the first owner. It works for 24 hours, and any
earlier link is void. Where there are members already, they invite others in the console; an owner who can't sign in
any more gets a link from "tenants reset-link".`
}

// Run prints a link for the first owner.
func (c *ownerLink) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "owner-link", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		code, expires, err := r.People.Codes.IssueOwnerCode(ctx, request)
		if errors.Is(err, tenants.ErrHasMembers) {
			return fmt.Errorf("%w, who invite others: see tenants owner-link --help", err)
		}
		if err != nil {
			return err
		}
		answer(c.to(app.WelcomePath, code), "Anyone who opens this link first becomes the owner. It works until %s:", expires.Format(timeForm))
		return nil
	})
}

type resetLink struct {
	installation
	links
	Email string `arg:"" help:"Address with which the member signs in."`
}

// Help implements kong.HelpProvider.
func (resetLink) Help() string {
	return `The link goes to standard output, alone and once: anyone who opens it sets the member's password, which ends all of the member's
sessions. It works for 24 hours, and any earlier link is void. Owners and admins can do the same in the console.`
}

// Run prints a link to set a member's password.
func (c *resetLink) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "reset-link", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		member, code, err := r.People.Codes.IssueResetFor(ctx, request, c.Email)
		if err != nil {
			return explain(err, "member", c.Email)
		}
		answer(c.to(app.ResetPath, code), "Give this link to %s (%s) and nobody else. It works until %s:", member.Name, member.Email,
			member.Reset.ExpiresAt.Format(timeForm))
		return nil
	})
}

// timeForm is how a time is printed.
const timeForm = "2006-01-02 15:04 UTC"
