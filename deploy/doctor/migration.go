package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirlog/weir/shared/pg"
)

// migrations reports whether the schema is up to date.
func (e *examination) migrations(ctx context.Context, o opened) (current bool) {
	var missing, unknown []string
	ok := e.look(ctx, "migrations", o.name, "Look at the role's rights.", func(ctx context.Context) (err error) {
		missing, unknown, err = pg.Migrated(ctx, o.pool, o.schema.Migrations...)
		return err
	})
	switch {
	case !ok:
		return false
	case len(missing) > 0:
		e.report.add(Fail, "migrations", o.name, fmt.Sprintf("%d are missing: %s", len(missing), firstFew(missing)),
			"weir migrate applies them, or the service of this version where its role owns the schema: its log says what keeps it from that.")
		return false
	case len(unknown) > 0:
		e.report.add(Warn, "migrations", o.name, fmt.Sprintf("%d are of another version: %s", len(unknown), firstFew(unknown)),
			"Use the weir of the version that the services have.")
	default:
		e.report.add(OK, "migrations", o.name, "all are applied", "")
		e.objects(ctx, o)
	}
	return true
}

// firstFew returns the first of many.
func firstFew(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
