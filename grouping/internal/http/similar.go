package http

import (
	"math"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// similarBody is a group that may be about
// the same fault as the requested one.
type similarBody struct {
	groupBody
	Likeness  float64  `json:"likeness"`
	OnlyHere  []string `json:"only_here"`
	OnlyThere []string `json:"only_there"`
}

func newSimilarBody(s groups.Similar) similarBody {
	const decimals = 1000
	return similarBody{
		groupBody: newGroupBody(s.Group), Likeness: math.Round(s.Likeness*decimals) / decimals,
		OnlyHere: append([]string{}, s.OnlyHere...), OnlyThere: append([]string{}, s.OnlyThere...),
	}
}

// similar lists the groups most like one, the
// most alike first, and how their calls differ.
func (a *API) similar(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	found, err := a.Service.Similar(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	body := httpapi.List[similarBody]{Items: make([]similarBody, len(found))}
	for i, s := range found {
		body.Items[i] = newSimilarBody(s)
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}
