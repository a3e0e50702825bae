package http

import (
	"math"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// similarErrorGroupBody is a group that may be about
// the same fault as the requested one.
type similarErrorGroupBody struct {
	errorGroupBody
	Similarity float64  `json:"similarity" minimum:"0" maximum:"1" description:"How much alike the first samples of the two are"`
	OnlyHere   []string `json:"only_here" maxItems:"10" description:"Calls of the group in the path that this one lacks, the innermost first"`
	OnlyThere  []string `json:"only_there" maxItems:"10" description:"Calls of this one that the group in the path lacks"`
}

func newSimilarErrorGroupBody(s groups.Similar) similarErrorGroupBody {
	const decimals = 1000
	return similarErrorGroupBody{
		errorGroupBody: newErrorGroupBody(s.Group), Similarity: math.Round(s.Similarity*decimals) / decimals,
		OnlyHere: append([]string{}, s.OnlyHere...), OnlyThere: append([]string{}, s.OnlyThere...),
	}
}

// similarErrorGroupListBody is all groups that are alike.
type similarErrorGroupListBody struct {
	Items []similarErrorGroupBody `json:"items" maxItems:"20"`
	httpapi.OnePage
}

// similar lists the groups most like one, the
// most alike first, and how their calls differ.
func (a *API) similar(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	found, err := a.Service.Similar(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	body := similarErrorGroupListBody{Items: make([]similarErrorGroupBody, len(found))}
	for i, s := range found {
		body.Items[i] = newSimilarErrorGroupBody(s)
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}
