package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirlog/weir/tenants"
)

// explain adds a remedy to an error about
// the thing with an id, or about values.
func explain(err error, thing, id string) error {
	var invalid tenants.Invalid
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return fmt.Errorf("there is no %s %q", thing, id)
	case errors.Is(err, tenants.ErrBegun):
		return fmt.Errorf("%s %q is being erased, or is gone: nothing brings it back", thing, id)
	case errors.As(err, &invalid):
		return errors.New(strings.Join(fixes(invalid), "\n"))
	}
	return err
}

func fixes(invalid tenants.Invalid) (texts []string) {
	for _, fault := range invalid {
		texts = append(texts, fault.Detail+" "+fault.Fix)
	}
	return texts
}
