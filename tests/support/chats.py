"""Chats and honest summaries of them, written by hand, to test the check of claims.

Turns and summaries have a line each, separated by ``--``; an indented line continues the one above.
"""


def _chats(text: str) -> list[tuple[list[str], list[str]]]:
    found = []
    for chat in text.strip().replace("\n  ", " ").split("\n\n"):
        turns, summaries = chat.split("\n--\n")
        found.append((turns.split("\n"), summaries.split("\n")))
    return found


def _words(text: str) -> list[str]:
    return text.split()


PEOPLE = _words("""
Ana Tomas Priya Elena Marcus Yuki Omar Ingrid Lucas Fatima Dmitri Chloe Kwame Nadia
""")
SURNAMES = _words("""
Silva Novak Sharma Petrova Webb Tanaka Haddad Larsen Moreau Rahman Volkov Dubois
""")
CITIES = _words("""
Lisbon Oslo Toronto Nairobi Berlin Kyoto Denver Porto Prague Chicago Valencia
""")
TOOLS = _words("""
PostgreSQL Redis Kafka Terraform Django GraphQL Kubernetes Figma Notion Stripe
""")
FALSE_NAMES = _words("""
Bernard Octavia Zelda Hamish Rosalind Thaddeus Winifred Barnaby Gwendolyn Montague Ulysses
Cassandra Reykjavik Montevideo Wellington Ljubljana Samarkand Cassini MongoDB Snowflake Cloudflare
Vertex Xerxes Quentin Beatrix
""")
MONTHS = _words("""
January February March April June July August September October November
""")
FIRMS = ("Acme Corp", "Globex", "Initech", "Northwind Traders", "Umbrella Labs", "Hooli")

# With placeholders for facts: each chat is filled in many ways.
CHATS = _chats("""
Hi, I'm {p1} {s1}. I'm planning a trip to {c1} from {m1} {d1} to {m1} {d2}.
Great choice, {p1}! What is your budget for the trip?
About ${n1} in total, and I'd like to stay near the old town. I hate early flights.
Understood. I found a hotel for ${n2} per night with free breakfast.
That works. {p2} is joining me for the last three days, so we need two beds.
--
{p1} {s1} plans a trip to {c1} from {d1} {m1} until {d2} {m1} with a budget of {n1} dollars. A
  hotel at {n2} dollars a night was suggested; {p2} joins later.
The user is travelling to {c1} in {m1}. They dislike early flights, want to stay close to the old
  town and have a total budget of ${n1}. {p2} will join for three days, so two beds are required.
Trip to {c1}: dates {m1} {d1}-{d2}, budget {n1}. Traveller: {p1}. Companion: {p2}.
Everything should stay below {n1} dollars. Sleeping arrangements changed because somebody else
  arrives later. Breakfast comes with the room. Mornings in airports are to be avoided.

Our API is slow. We run {t1} on a box with {d1} GB of RAM and see {n1} ms latency.
How many requests per second do you handle, and is there a cache in front of {t1}?
Roughly {n2} requests per second. No cache. {p1} suggested {t2} but nobody had time.
Adding {t2} as a read-through cache should cut the latency considerably.
OK, let's go with {t2}. {p2} will set it up by Friday. Track it as OPS-{n3}.
--
The team runs {t1} with {d1} GB of memory and suffers {n1} ms of latency at {n2} requests per
  second. They decided to add {t2}, as {p1} had suggested.
Decision: use {t2} as a cache in front of {t1}. Owner: {p2}, due Friday (OPS-{n3}).
Performance was discussed. Without a cache, {t1} answers in {n1} milliseconds. {p2} is going to
  install {t2} before the weekend.
Slowness of the interface was the complaint. Memory is limited to {d1} GB. Caching was chosen as
  remedy, and Friday is the target date. Responsibility lies with {p2}.

I need help with my thesis. {p1} {s1} from {c1} is my supervisor.
Happy to help. What is the topic and when is it due?
It's about urban heat islands. The deadline is {d1} {m1} 2025 and I have {n1} words.
How long must it be?
At least {n2} words with sections for Introduction, Methods, Results and Discussion. A good source
  is https://example.org/heat/{n3}.
--
The user writes a thesis on urban heat islands supervised by {p1} {s1}. It is due on {m1} {d1},
  2025 and must have at least {n2} words; {n1} are written so far.
Thesis about heat islands in cities. Supervisor {s1} works in {c1}. Sections: Introduction,
  Methods, Results, Discussion. Source: https://example.org/heat/{n3}.
Currently {n1} words exist of the {n2} that are needed by 2025-{mm}-{dd}.
Climate in cities is the subject. Academic guidance comes from {p1}. Structure follows the usual
  pattern. Progress so far: {n1} words. Submission happens in {m1} 2025.

My order {n1} from {f1} still hasn't arrived. I paid {n2} euros on {m1} {d1}.
I'm sorry to hear that. May I have the name on the order?
{p1} {s1}, shipped to {c1}. The tracking page says nothing since {m1} {d2}.
I can offer a refund or a replacement, {p1}.
A replacement please, and never call me before noon.
--
Order {n1} from {f1}, paid on {m1} {d1} ({n2} EUR), never reached {p1} {s1} in {c1}. The customer
  chose a replacement over a refund.
Customer {s1} wants a replacement for order #{n1}. Calls only after noon. The parcel was last
  tracked on {d2} {m1}.
{p1}'s parcel is lost. It cost €{n2}. Shipping address is in {c1}.
Dissatisfied customer. Parcel missing since {m1}. Compensation was offered in two forms. Telephone
  contact is unwelcome in the morning. Amount paid: {n2}.

Can you help plan {p1}'s birthday dinner? We'll be {d1} people, two of them vegan.
Sure! Which day and what cuisine do you have in mind?
Saturday at 7:30 pm. {p1} loves Thai food, and {p2} is allergic to peanuts.
There is a good place in {c1} that charges about {n1} per person.
Perfect, book it under {s1}. My phone number ends in {n2}.
--
A Thai dinner for {p1}'s birthday is planned for Saturday at 19:30 with {d1} guests in {c1}, at
  roughly {n1} each. {p2} has a peanut allergy and two guests are vegan.
Birthday dinner on Saturday, {d1} people. Reservation under the name {s1}. Avoid peanuts because
  of {p2}.
The group wants Thai food. Price per head: {n1}. Contact number ends with {n2}.
Celebration on the weekend. Dietary restrictions matter: nuts are dangerous for {p2}. Cost per
  guest is around {n1}. Half past seven in the evening was proposed.

We're choosing between {f1} and {f2} for payroll. {f1} quoted ${n1} a year.
What did {f2} quote, and how many employees do you have?
{f2} wants ${n2}, but includes support in {c1}. We have {d1} employees.
Per employee {f2} may be the better deal if you need support.
We decided on {f2}. {p1} {s1} signs the contract on {m1} {d2}. See www.example.com/q{n3}.
--
The company with {d1} employees compared payroll offers: {f1} at ${n1} and {f2} at ${n2} per year.
  It chose {f2}; {p1} {s1} will sign on {m1} {d2}.
{f2} won because its price includes support in {c1}. Signing: {d2} {m1} by {s1}.
Payroll vendor selected: {f2}. Annual price {n2} dollars, versus {n1} from {f1}.
Procurement finished. Cheaper was not better: service in {c1} tipped the scales for {f2}.
  Headcount stands at {d1}. Signature follows in {m1}. Lawyers are not involved.
""")

# Paraphrased, in the terse style of models, and in other languages.
FREE = _chats("""
hey can you help me fix my bike? the chain keeps falling off since I replaced the cassette with a
  Shimano 11-speed
Sure. Did you adjust the derailleur limit screws after the swap?
no, I didn't know I had to. I'm in Utrecht and the shop here wants 45 euros
You can do it yourself in 20 minutes with a screwdriver.
--
Bicycle repair advice was given. Limit screws need adjustment after installing the Shimano
  cassette. Doing it oneself takes 20 minutes and saves the 45 euros a workshop in Utrecht would
  charge.
Cyclist from Utrecht has a chain that drops. Cause: unadjusted derailleur. Cost of professional
  help: €45.
Chain trouble started when an 11-speed Shimano cassette was fitted. Nothing was adjusted then.
  Self-repair is feasible.

I have a job interview at Siemens on Tuesday, can we practise?
Of course! Which role?
Data engineer, in Munich. They asked for 5 years of Spark experience and I only have 3.
Emphasise related work such as Flink or Beam.
I did use Flink at my last job at Zalando.
--
Interview preparation for a data engineering position with Siemens in Munich. Experience with
  Spark is shorter than required: 3 instead of 5 years. Flink knowledge from Zalando can
  compensate.
Candidate interviews on Tuesday. Weakness: too little Spark. Strength: Flink. Employer so far was
  Zalando.
Practice is wanted before Tuesday's interview. Spark is required for five years. Honesty about the
  gap was not discussed.

My daughter Mia is 7 and wants to learn an instrument. Piano or violin?
Both work. Pianos cost more and need room.
We live in a small flat in Leeds, so violin. Lessons on Thursdays at 4pm with Mrs. Okafor, £25
  each.
Good choice. Rent an instrument first.
--
Mia, aged 7, will learn the violin. Space at home in Leeds is limited. Lessons with Mrs. Okafor
  take place on Thursdays at 16:00 and cost 25 pounds. Renting first was advised.
Parent asked about instruments. Violin was selected since the flat is small. Teacher: Okafor. Fee:
  £25.
Music lessons begin on a Thursday. Rental of an instrument makes sense at first. Piano would be
  too large.

Deploy failed again: error 502 on payments-api after release 4.2.1
Which commit was the last good one?
4.2.0 from Monday. Since then Ravi merged PR 881 that changes the timeout to 30s.
Roll back to 4.2.0 and set the timeout to 60s.
Rolled back, it's green. Postmortem tomorrow at 10:00.
--
Release 4.2.1 broke payments-api with error 502. Rollback to 4.2.0 fixed it. Suspect: PR 881 by
  Ravi, which set the timeout to 30s. Raising it to 60s was recommended.
Production is healthy after the rollback. Postmortem is scheduled at 10:00. Timeouts were too
  short.
Incident summary: payments failed, Ravi's change is the likely cause. Version 4.2.0 is running.

Quiero aprender a cocinar paella. Somos 6 personas y Carmen no come marisco.
Puedes hacer paella valenciana con pollo y conejo.
Perfecto, la haremos el domingo en Alicante. Necesito 600 gramos de arroz bomba.
--
El usuario cocinará paella valenciana el domingo en Alicante para 6 personas. Carmen no come
  marisco. Hacen falta 600 gramos de arroz.
Receta elegida: paella valenciana con pollo. Cantidad de arroz: 600 g. Carmen evita el marisco.

Ich suche eine Wohnung in Hamburg, maximal 1.200 Euro warm.
Welcher Stadtteil?
Eimsbüttel oder Altona. Einzug am 1. Oktober 2025. Wir haben einen Hund namens Balu.
--
Gesucht wird eine Wohnung in Hamburg, bevorzugt Eimsbüttel oder Altona, für höchstens 1200 Euro.
  Der Einzug soll am 01.10.2025 sein. Ein Hund namens Balu zieht mit ein.
Die Familie mit Hund Balu möchte im Oktober nach Altona oder Eimsbüttel ziehen. Das Budget liegt
  bei 1.200 Euro.

Я переезжаю в Казань 5 мая, помогите выбрать школу для Алисы.
Сколько ей лет?
Ей 9 лет. Анна Петрова советует гимназию 94.
--
Пользователь переезжает в Казань 5 мая. Алисе 9 лет; Анны Петровой совет: гимназия 94.

I weigh 82 kg and want to be at 75 by the end of June. I run twice a week.
That's 7 kg in about four months, realistic.
My doctor, Dr. Keller, says my blood pressure is 140 over 90.
--
Weight loss goal: from 82 to 75 kg by late June. Running happens twice weekly. Blood pressure of
  140/90 was measured by Dr. Keller.
Patient of Dr. Keller. Target weight is 75 kilograms. Hypertension is mild. Running helps.

I read Dune and The Left Hand of Darkness. What next?
Try Hyperion by Dan Simmons or Foundation by Isaac Asimov.
I liked Le Guin more than Herbert. Nothing longer than 400 pages please.
--
Reader enjoyed Le Guin more than Herbert. Suggested books: Hyperion by Simmons and Asimov's
  Foundation. Length limit: 400 pages.
Science fiction recommendations were exchanged. Dune was read already. Brevity matters to the
  reader.

We have $12k for the kitchen. Cabinets from IKEA were quoted at 5,400 and the counter at 2.1k.
Then appliances can take at most 4,500.
Right. Jorge from BuildRight starts on the 14th.
--
Kitchen renovation with a budget of $12,000: IKEA cabinets 5,400, countertop 2,100, appliances up
  to 4,500. Jorge of BuildRight begins on the 14th.
Renovation starts on the 14th. Appliances are capped at 4.5k. Contractor: BuildRight (Jorge).
""")
