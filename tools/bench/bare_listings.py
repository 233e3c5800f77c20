"""Asks AWS by bare boto3 what `trn audit` asks it in its listings, and does nothing with the answers.

Usage: bare_listings.py REGION JSON; JSON is a list of [service, region or null, method, arguments].
"""

import json
import sys

import boto3

region, questions = sys.argv[1:]
clients = {}
for service, elsewhere, method, arguments in json.loads(questions):
    place = (service, elsewhere or region)
    if place not in clients:
        clients[place] = boto3.client(service, region_name=place[1])
    getattr(clients[place], method)(**arguments)
