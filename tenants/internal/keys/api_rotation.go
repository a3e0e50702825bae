package keys

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
)

// defaultOverlap is how long a rotated key still works by default.
const defaultOverlap = 24 * time.Hour

// rotationJSON is the new key, shown only here, and the replaced one.
type rotationJSON struct {
	keyJSON

	Rotated keyJSON `json:"rotated"`
}

func (a API) rotate(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	overlap, err := overlapOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	rotation, err := a.service.Rotate(r.Context(), request, id, overlap)
	if err != nil {
		return api.ProblemOf(err, "API key", id)
	}
	shown, err := a.key(r, rotation.New.ID)
	if err != nil {
		return err
	}
	rotated, err := a.key(r, rotation.Old.ID)
	if err != nil {
		return err
	}
	shown.Key = rotation.Secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, rotationJSON{shown, rotated})
	return nil
}

type overlapBody struct {
	Overlap *int64 `json:"overlap_seconds" minimum:"0" maximum:"604800" default:"86400" description:"How long the old key goes on"`
}

// overlapOf is the overlap in the body, which may be absent.
func overlapOf(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	var body overlapBody
	if r.ContentLength != 0 {
		if err := httpapi.ReadJSON(w, r, &body); err != nil {
			return 0, err
		}
	}
	if body.Overlap == nil {
		return defaultOverlap, nil
	}
	longest := int64(tenants.MaxOverlap / time.Second)
	return time.Duration(min(max(*body.Overlap, -1), longest+1)) * time.Second, nil // out of range stays so, without an overflow
}
