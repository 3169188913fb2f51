# For Varnish, behind hitch (hitch.conf).
vcl 4.1;
import std;

# Varnish probes only the port that it sends requests to, so each instance is two backends.
probe ready { .url = "/readyz"; .interval = 1s; .timeout = 1s; .window = 1; .threshold = 1; .initial = 0; }
backend ops1 { .host = "10.0.0.11"; .port = "9464"; .probe = ready; }
backend ops2 { .host = "10.0.0.12"; .port = "9464"; .probe = ready; }
backend ops3 { .host = "10.0.0.13"; .port = "9464"; .probe = ready; }
backend app1 { .host = "10.0.0.11"; .port = "3000"; .connect_timeout = 3s; .first_byte_timeout = 75s; .between_bytes_timeout = 75s; }
backend app2 { .host = "10.0.0.12"; .port = "3000"; .connect_timeout = 3s; .first_byte_timeout = 75s; .between_bytes_timeout = 75s; }
backend app3 { .host = "10.0.0.13"; .port = "3000"; .connect_timeout = 3s; .first_byte_timeout = 75s; .between_bytes_timeout = 75s; }

sub vcl_recv {
  if (std.port(server.ip) == 80) { return (synth(308)); }
  # Any instance that is ready; if none is, one that may be alive.
  if (std.healthy(ops1) && std.random(0, 3) < 1) { set req.backend_hint = app1; }
  elseif (std.healthy(ops2) && std.random(0, 2) < 1) { set req.backend_hint = app2; }
  elseif (std.healthy(ops3)) { set req.backend_hint = app3; }
  elseif (std.healthy(ops2)) { set req.backend_hint = app2; }
  else { set req.backend_hint = app1; }
  set req.http.X-Forwarded-For = client.ip;
  set req.http.X-Forwarded-Proto = "https";
  unset req.http.Forwarded;
  # Nothing in a pipe is looked at, so no other request may begin one.
  if (req.url ~ "^/ws/" && req.http.Upgrade ~ "(?i)websocket") { return (pipe); }
  return (pass);
}

sub vcl_pipe {
  set bereq.http.Upgrade = req.http.Upgrade;
  set bereq.http.Connection = req.http.Connection;
}

sub vcl_backend_error {
  # A GET may be sent again, to another instance.
  if (bereq.method == "GET" && bereq.retries < 2) {
    if (bereq.backend == app1) { set bereq.backend = app2; }
    elseif (bereq.backend == app2) { set bereq.backend = app3; }
    else { set bereq.backend = app1; }
    return (retry);
  }
}

sub vcl_synth {
  if (resp.status == 308) {
    set resp.http.Location = "https://" + req.http.Host + req.url;
    return (deliver);
  }
}
