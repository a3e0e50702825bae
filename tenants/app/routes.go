package app

import (
	nethttp "net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
)

func (a *App) routes() nethttp.Handler {
	router := a.base.NewRouter(a.Ready, a.Behind)
	guard := a.base.NewGuard(identity.GuardConfig{Credentials: a.credentials, Ready: a.Ready})
	a.mount(router.With(httpapi.LimitChanges), guard)
	return router
}

// OpenAPI describes the module's API.
func OpenAPI() []byte { return api.Describe(rooms{}.operations()) }

// rooms are the rooms with an API.
type rooms struct {
	signIn        signin.API
	people        people.API
	registry      registry.API
	keys          keys.API
	leakReports   keys.LeakReports
	notifications notifications.API
	audit         audit.API
}

func (r rooms) operations() []openapi.Operation {
	return slices.Concat(r.signIn.Operations(), r.people.Operations(), r.registry.Operations(), r.keys.Operations(),
		[]openapi.Operation{r.leakReports.Operation()}, r.notifications.Operations(), r.audit.Operations())
}

// mount adds the rooms' API and pages.
func (a *App) mount(router chi.Router, guard *identity.Guard) {
	changed := changes.NewLimiter(a.base.Clock, a.config.Bounds.changes())
	auditing := audit.NewService(audit.NewStore(a.views.From(a.base.Replica)), a.registry.Organizations)
	answers := &api.Kit{Guard: guard, Clock: a.base.Clock, TrustedProxies: a.base.Proxies}
	answers.Mount(router, changed, rooms{
		signIn: signin.NewAPI(answers, a.signIn.Sessions), people: people.NewAPI(answers, a.people), registry: registry.NewAPI(answers, a.registry),
		keys: keys.NewAPI(answers, a.keys), leakReports: keys.NewLeakReports(a.exposures, guard, a.leakKeys),
		notifications: notifications.NewAPI(answers, a.webhooks, a.deliveries), audit: audit.NewAPI(answers, auditing),
	}.operations())
	readers := directory{people.NewStore(a.views), registry.NewStore(a.views)}
	kit := pages.NewKit(pages.Config{Directory: readers, Guard: guard, Clock: a.base.Clock, IDs: newID, Origin: a.linkOrigin(), TrustedProxies: a.base.Proxies})
	ofSignIn := signin.NewPages(kit, a.signIn, a.base.Metrics)
	ofSignIn.MountOpen(router)
	ofPeople := people.NewPages(kit, a.people, ofSignIn.Entrance())
	ofPeople.MountCodes(router)
	ofPeople.MountLinks(router, a.unsubscribe)
	kit.Mount(router, changed, ofSignIn.Mount, ofPeople.Mount, registry.NewPages(kit, a.registry).Mount,
		keys.NewPages(kit, a.keys).Mount, notifications.NewPages(kit, a.webhooks, a.deliveries).Mount, audit.NewPages(kit, auditing).Mount)
}

// A directory finds a page's reader.
type directory struct {
	people.Store
	organizations
}

type organizations = registry.Store
