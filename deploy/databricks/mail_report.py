# Databricks notebook source
# MAGIC %md
# MAGIC # Mail the weekly report
# MAGIC The page goes as an attachment, as it is: it needs no network. Only Python's own library is
# MAGIC used, so that this runs on any compute without the wheel.

# COMMAND ----------

for name in ("page", "recipients", "sender", "server", "scope"):
    dbutils.widgets.text(name, "")
asked = {name: dbutils.widgets.get(name) for name in ("page", "recipients", "sender", "server")}
scope = dbutils.widgets.get("scope")

# COMMAND ----------

import smtplib
import ssl
from email.message import EmailMessage
from pathlib import Path

recipients = [one.strip() for one in asked["recipients"].split(",") if one.strip()]
page = Path(asked["page"])
message = EmailMessage()
message["Subject"] = f"Kafka, the week before {page.stem}"
message["From"] = asked["sender"]
message["To"] = ", ".join(recipients)
message.set_content("The weekly report is attached. Open it in a browser; it needs no network.\n")
message.add_attachment(page.read_bytes(), maintype="text", subtype="html", filename=page.name)

# COMMAND ----------

if recipients:
    host, _, port = asked["server"].rpartition(":")
    with smtplib.SMTP(host, int(port), timeout=60) as server:
        server.starttls(context=ssl.create_default_context())
        server.login(dbutils.secrets.get(scope, "user"), dbutils.secrets.get(scope, "password"))
        server.send_message(message)
    print(f"sent to {len(recipients)}")
else:
    print("nobody to send it to: set the bundle's variable recipients")
