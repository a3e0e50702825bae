package allinone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
)

// The demo organization.
const (
	demoName  = "Demo"
	demoTier  = "scale"
	demoEmail = "owner@demo.weir.example"
)

// openEnv reads an earlier start's file, and adds the values of this
// one. The operator's token is written before its first use.
func (a *App) openEnv() (err error) {
	if a.env, err = ReadDevEnv(a.dir.env()); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(a.listener.Addr().String())
	if err != nil {
		return err
	}
	origin := "https://" + net.JoinHostPort(a.config.host(), port)
	a.env.BaseURL, a.env.ConsoleURL, a.env.CAFile = origin+"/v1", origin+"/console", localca.In(a.dir.tls()).CA
	if operator := a.config.OperatorToken.Reveal(); operator != "" {
		a.env.OperatorToken = operator
	}
	if a.env.OperatorToken == "" {
		a.env.OperatorToken = identity.ServiceTokenPrefix + randomHex(24)
	}
	if a.env.WebhookKeys == "" {
		a.env.WebhookKeys = randomHex(32)
	}
	return a.env.Write(a.dir.env())
}

func randomHex(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails: see crypto/rand
	return hex.EncodeToString(random)
}

// ensureDemo creates the missing parts of the demo organization by the
// public API. Each is written before the next, so that the next start
// continues an interrupted one.
func (a *App) ensureDemo(ctx context.Context) error {
	api, err := client.New(a.env.BaseURL, a.env.CAFile, 1)
	if err != nil {
		return err
	}
	defer api.Close()
	if err := a.dropForeignDemo(ctx, api); err != nil {
		return err
	}
	for _, step := range a.demoSteps(api) {
		if *step.value != "" {
			continue
		}
		if *step.value, err = step.create(ctx); err != nil {
			return err
		}
		if err := a.env.Write(a.dir.env()); err != nil {
			return err
		}
	}
	return nil
}

// Limits of the wait for the control plane's word about the demo
// organization: its tokens may not be published again yet.
const (
	demoWait = 30 * time.Second
	demoPoll = 200 * time.Millisecond
)

// dropForeignDemo drops an organization in dev.env that this
// installation does not have, after a change of database. The file is
// the only copy of its credentials, so it is kept beside the new one.
func (a *App) dropForeignDemo(ctx context.Context, api *client.Client) error {
	if a.env.Organization == "" {
		return nil
	}
	foreign, err := a.demoIsForeign(ctx, api)
	if err != nil || !foreign {
		return err
	}
	kept, err := KeepDevEnv(a.dir.env(), time.Now())
	if err != nil {
		return err
	}
	a.logger.Warn("this installation does not have the demo organization of dev.env: another one is created",
		"organization", a.env.Organization, "kept", kept)
	a.env.APIKey, a.env.ServiceToken, a.env.Organization, a.env.Project = "", "", "", ""
	a.env.ConsoleEmail, a.env.ConsolePassword = "", ""
	return nil
}

// demoIsForeign reports whether the control plane says that it does not
// have the organization of dev.env. Only its database knows: a refused
// token proves nothing. Without an answer the organization is kept.
func (a *App) demoIsForeign(ctx context.Context, api *client.Client) (bool, error) {
	deadline := time.Now().Add(demoWait)
	for ctx.Err() == nil {
		_, err := api.Organization(ctx, a.env.OperatorToken, a.env.Organization)
		var problem *client.Problem
		switch {
		case err == nil:
			return false, nil
		case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
			return true, nil
		case time.Now().After(deadline):
			a.logger.Warn("cannot find whether the demo organization of dev.env is known here: it is kept", "error", err)
			return false, nil
		}
		lifecycle.Pause(ctx, demoPoll)
	}
	return false, ctx.Err()
}

// A demoStep fills one value of dev.env.
type demoStep struct {
	value  *string
	create func(ctx context.Context) (string, error)
}

func (a *App) demoSteps(api *client.Client) []demoStep {
	env := &a.env
	return []demoStep{
		{&env.Organization, func(ctx context.Context) (string, error) {
			organization, err := api.CreateOrganization(ctx, env.OperatorToken, demoName, demoTier)
			return organization.ID, err
		}},
		{&env.Project, func(ctx context.Context) (string, error) {
			project, err := api.CreateProject(ctx, env.OperatorToken, env.Organization, demoName)
			return project.ID, err
		}},
		{&env.ServiceToken, func(ctx context.Context) (string, error) {
			token, err := api.CreateServiceToken(ctx, env.OperatorToken, env.Organization, "billing", "billing:read")
			return token.Token, err
		}},
		{&env.APIKey, func(ctx context.Context) (string, error) {
			key, err := api.CreateAPIKey(ctx, env.OperatorToken, env.Project, "prod", "demo")
			return key.Key, err
		}},
		{&env.ConsolePassword, func(ctx context.Context) (string, error) { return a.createOwner(ctx, api) }},
	}
}

// createOwner creates the person who signs in to the console. An
// address belongs to one person, so if an earlier demo organization has
// it, another one is generated.
func (a *App) createOwner(ctx context.Context, api *client.Client) (password string, err error) {
	password = randomHex(12)
	a.env.ConsoleEmail = demoEmail
	member := client.NewMember{Organization: a.env.Organization, Email: demoEmail, Name: "Demo Owner", Role: "owner", Password: password}
	err = api.CreateMember(ctx, a.env.OperatorToken, member)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusConflict {
		member.Email = fmt.Sprintf("owner-%s@demo.weir.example", randomHex(4))
		a.env.ConsoleEmail = member.Email
		err = api.CreateMember(ctx, a.env.OperatorToken, member)
	}
	return password, err
}
