package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Health adds /healthz (the process answers) and /readyz (it can serve; else 500 unavailable with the reason in words
// that hold nothing secret).
func Health(router chi.Router, ready func() error) {
	router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	router.Get("/readyz", Handle(func(w http.ResponseWriter, _ *http.Request) error {
		if err := ready(); err != nil {
			return Unavailable("Not ready: "+err.Error(), 1)
		}
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
		return nil
	}))
}
