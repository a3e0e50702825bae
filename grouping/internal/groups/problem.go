package groups

import (
	"errors"
	"net/http"
	"strings"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
)

// Problem is what clients and people read of an error of a use case.
func Problem(err error) error {
	var invalid grouping.Invalid
	var full postgres.TooManyAlerts
	switch {
	case errors.As(err, &invalid):
		pointer := ""
		if invalid.Field != "" {
			pointer = "/" + invalid.Field
		}
		return httpapi.Invalid(pointer, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.Is(err, idempotency.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.Is(err, ErrSettingsChanged):
		return httpapi.NewProblem(http.StatusConflict, "version_conflict",
			"Somebody else has changed the settings meanwhile. Read them, and send the request again if it still makes sense.")
	case errors.Is(err, postgres.ErrAlertChanged):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"Somebody else has changed the alert since. Read it again, and change what you find.")
	case errors.Is(err, postgres.ErrTested):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"A test was sent within the last minute. Wait for it, or send another one later.")
	case errors.Is(err, postgres.ErrMerging):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"Others merge or split these groups at this moment. Send the request again.")
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, grouping.ErrFull), errors.Is(err, postgres.ErrManySplits):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", strings.ToUpper(err.Error()[:1])+err.Error()[1:]+".")
	}
	return err
}
