package clickhouse_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/clickhousetest"
)

// ask sends a statement to a test's database.
func ask(t *testing.T, url, statement string) (string, error) {
	t.Helper()
	at := strings.LastIndexByte(url, '/')
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url[:at]+"/?log_comment=*&database="+url[at+1:], strings.NewReader(statement))
	testenv.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	testenv.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", text)
	}
	return string(text), err
}

// What the schema prints is SQL of ClickHouse, for each layout.
func TestSchemaIsSQL(t *testing.T) {
	url := clickhousetest.URL(t)
	for _, layout := range []clickhouse.Layout{
		{Database: "weir"}, {Database: "weir", Cluster: "logs"}, {Database: "weir", Cluster: "logs", Policy: "hot_cold", Cold: 3}, {Database: "weir", Policy: "hot_cold"},
	} {
		for _, statement := range append(layout.Table(), layout.Access()...) {
			if _, err := ask(t, url, "SELECT formatQuery('"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(statement)+"')"); err != nil {
				t.Errorf("%+v: %s: %v", layout, statement, err)
			}
		}
	}
}
