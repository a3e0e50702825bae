package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

// A login is how PostgreSQL's programs reach a database: the address,
// an argument that every user of the machine can read, has no secret.
type login struct {
	address string
	env     []string
	folder  string // of a file with a secret that libpq takes from no variable; "": none
}

// everyOrganization lets the programs see all rows: for policies of row
// level security it means all organizations (shared/pg).
const everyOrganization = "-c weir.organization=*"

func loginOf(database httpapi.Secret) (l login, err error) {
	parsed, err := url.Parse(database.Reveal())
	if err != nil {
		return l, errors.New("cannot read the address of the database")
	}
	query := parsed.Query()
	if err := l.takeSecrets(parsed.User, query); err != nil {
		return l, err
	}
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	// libpq takes options from the address if it has any, and else
	// from the environment.
	options := strings.TrimSpace(cmp.Or(query.Get("options"), os.Getenv("PGOPTIONS")) + " " + everyOrganization)
	removeOurs(query)
	query.Set("options", options)
	parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq does not decode a plus
	l.address = parsed.String()
	return l, nil
}

// takeSecrets keeps what the address must not show.
func (l *login) takeSecrets(user *url.Userinfo, query url.Values) error {
	password, _ := user.Password()
	if query.Has("password") {
		password = query.Get("password")
	}
	if password != "" {
		l.env = append(l.env, "PGPASSWORD="+password)
	}
	if !query.Has("sslpassword") {
		return nil
	}
	if query.Has("service") || os.Getenv("PGSERVICE") != "" {
		return errors.New("the address of the database has sslpassword, and a service beside it: name one of them")
	}
	return l.keep("sslpassword", query.Get("sslpassword"))
}

// removeOurs removes secrets, and options that only our own driver understands.
func removeOurs(query url.Values) {
	for name := range query {
		switch name {
		case "password", "sslpassword", "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
			query.Del(name)
		}
		if strings.HasPrefix(name, "pool_") {
			query.Del(name)
		}
	}
}

// keep puts a secret into a service file, readable only by this user.
func (l *login) keep(name, secret string) (err error) {
	if l.folder, err = os.MkdirTemp("", "weir-login-"); err != nil {
		return err
	}
	file := filepath.Join(l.folder, "service")
	if err := os.WriteFile(file, []byte("[weir]\n"+name+"="+secret+"\n"), 0o600); err != nil {
		return errors.Join(err, l.forget())
	}
	l.env = append(l.env, "PGSERVICEFILE="+file, "PGSERVICE=weir")
	return nil
}

func (l *login) forget() error {
	if l.folder == "" {
		return nil
	}
	return os.RemoveAll(l.folder)
}

// A Privilege is what a table's owner, or everybody, may do with it if
// migrations changed the rights. Names of roles could not be restored
// on a server with other roles.
type Privilege struct {
	Table  string   `json:"table"`
	Column string   `json:"column,omitempty"` // "": the whole table
	Public bool     `json:"public,omitempty"` // everybody; else the owner
	Rights []string `json:"rights"`           // none: all were revoked
}

func privileges(ctx context.Context, tx pgx.Tx) ([]Privilege, error) {
	found, err := tx.Query(ctx, `WITH of_tables AS (
			SELECT relname, '' AS attname, relacl AS acl, relowner FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relacl IS NOT NULL
		UNION ALL
			SELECT relname, attname, attacl, relowner FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attacl IS NOT NULL AND NOT attisdropped)
		SELECT relname, attname, public, ARRAY(SELECT privilege_type FROM aclexplode(acl)
			WHERE grantee = CASE WHEN public THEN 0 ELSE relowner END ORDER BY 1)
		FROM of_tables, (VALUES (false), (true)) AS grantees (public) ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[Privilege])
}

// restorePrivileges gives a restored table, which has all rights, its former
// ones. Rights on the table come before those on columns: revoking the first revokes both.
func restorePrivileges(ctx context.Context, tx pgx.Tx, all []Privilege) error {
	for _, p := range all {
		if _, err := tx.Exec(ctx, p.statements()); err != nil {
			return fmt.Errorf("cannot set the rights on %s: %w", p.Table, err)
		}
	}
	return nil
}

func (p Privilege) statements() string {
	table, grantee, columns := pgx.Identifier{p.Table}.Sanitize(), "CURRENT_USER", ""
	if p.Public {
		grantee = "PUBLIC"
	}
	var all strings.Builder
	if p.Column == "" {
		fmt.Fprintf(&all, "REVOKE ALL ON %s FROM %s;", table, grantee)
	} else {
		columns = " (" + pgx.Identifier{p.Column}.Sanitize() + ")"
	}
	for _, right := range p.Rights {
		fmt.Fprintf(&all, "GRANT %s%s ON %s TO %s;", right, columns, table, grantee)
	}
	return all.String()
}

// keysFolder holds the copies of secrets and certificates.
const keysFolder = "keys"

// keyFiles returns the settings that name a file which no database
// contains: without it nobody can sign in at the brokers and databases,
// verify old signatures, or be trusted by clients.
func keyFiles() (variables []string) {
	for _, setting := range os.Environ() {
		name, file, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "WEIR_") && strings.HasSuffix(name, process.FileSuffix) && file != "" {
			variables = append(variables, name)
		}
	}
	return variables
}

// keys copies those files, or names them.
func (w *work) keys() (err error) {
	variables := keyFiles()
	if !w.Keys {
		if len(variables) > 0 {
			fmt.Fprintf(w.out, "keys      are not in it, keep them elsewhere: %s\n", strings.Join(variables, ", "))
		}
		return nil
	}
	if err := os.Mkdir(filepath.Join(w.dir, keysFolder), 0o700); err != nil {
		return err
	}
	for _, variable := range variables {
		if err := copyKey(os.Getenv(variable), filepath.Join(w.dir, keysFolder, variable)); err != nil {
			return fmt.Errorf("cannot copy the file of %s: %w", variable, err)
		}
	}
	fmt.Fprintf(w.out, "keys      %s\n", strings.Join(variables, ", "))
	w.manifest.Keys, err = filesIn(w.dir, keysFolder)
	return err
}

func copyKey(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, string(raw), 0o600)
}
