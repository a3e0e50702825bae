{{- $on := ""}}{{if .Cluster}}{{$on = print " ON CLUSTER '" .Cluster "'"}}{{end -}}
{{- $policy := print "ON " .Database ".entries"}}{{if .Cluster}}{{$policy = print "ON " .Database ".entries_local"}}{{end -}}
CREATE ROLE IF NOT EXISTS weir_writer{{$on}};

GRANT{{$on}} SELECT, INSERT, ALTER DELETE ON {{.Database}}.* TO weir_writer;

GRANT{{$on}} SELECT ON system.mutations TO weir_writer;

{{if .Cluster}}GRANT{{$on}} CLUSTER ON *.* TO weir_writer;

{{end}}CREATE ROLE IF NOT EXISTS weir_reader{{$on}};

GRANT{{$on}} SELECT ON {{.Database}}.* TO weir_reader;

CREATE ROW POLICY IF NOT EXISTS weir_writer{{$on}} {{$policy}} FOR SELECT USING organization = getSetting('log_comment') OR getSetting('log_comment') = '*' TO weir_writer;

CREATE ROW POLICY IF NOT EXISTS weir_reader{{$on}} {{$policy}} FOR SELECT USING organization = getSetting('log_comment') TO weir_reader;
