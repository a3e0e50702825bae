package allinone

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
)

// Routes returns the routes of all modules, such as "GET
// /console/errors/{group}", sorted, each once.
func (a *App) Routes() (routes []string, err error) {
	for name, module := range a.modules {
		router, ok := module.Handler().(chi.Routes)
		if !ok {
			return nil, fmt.Errorf("the handler of %s has no routes to walk", name)
		}
		err := chi.Walk(router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			routes = append(routes, method+" "+route)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot walk the routes of %s: %w", name, err)
		}
	}
	slices.Sort(routes)
	return slices.Compact(routes), nil
}
