package app

import (
	"context"
	"errors"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/service"
)

// followed is the published state of other services, in memory.
type followed struct {
	credentials *identity.Credentials
	directory   *identity.Directory

	book *rules.Book

	accounts, keys, projects, rules *state.Reader
	states                          []*state.Reader // these four
}

func follow(credentials *identity.Credentials, base *service.Base, gate *admission.Gate) *followed {
	f := &followed{credentials: credentials, directory: identity.NewDirectory()}
	f.accounts = bus.FollowAccounts(base.States, gate, base.Logger)
	f.keys, f.projects = f.credentials.Follow(base.States, base.Logger), f.directory.Follow(base.States, base.Logger)
	f.book = rules.NewBook(base.Metrics, base.Clock)
	f.rules = bus.FollowRules(base.States, f.book, base.Logger)
	f.states = []*state.Reader{f.accounts, f.keys, f.projects, f.rules}
	return f
}

func (f *followed) loops() (loops []func(context.Context) error) {
	for _, state := range f.states {
		loops = append(loops, state.Run)
	}
	return loops
}

// complete is nil once all is read.
func (f *followed) complete() error {
	for _, state := range f.states {
		if err := state.Complete(); err != nil {
			return err
		}
	}
	return f.credentials.Compared()
}

// loaded is nil once credentials and projects are read.
func (f *followed) loaded() error {
	return httpapi.Part("keys and projects", errors.Join(f.keys.Complete(), f.projects.Complete(), f.credentials.Compared()))
}
